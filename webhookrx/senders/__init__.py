"""Who sent a request, and where its time, message and severity are: one data file for each kind of sender."""
