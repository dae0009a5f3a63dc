"""Messages to objects of S3, by obstore."""
