"""
The pages of the console for people: made here of what the API answers, and useful without a script.
"""
