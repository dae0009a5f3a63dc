"""
Single sign-on: people sign in at a provider of OpenID Connect, whose word on them counts (code flow with PKCE).
"""
