"""
Open ports: from the settings of a listener to an endpoint, and from an endpoint to a service that owns its port.
"""
