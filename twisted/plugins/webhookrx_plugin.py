"""
Makes C{twistd webhookrx} known to Twisted. Nothing of webhookrx is imported before it is asked for: a mistake
there must not take the command away without a word.
"""

from twisted.application.service import ServiceMaker

webhookrx_service = ServiceMaker("webhookrx", "webhookrx.tap", "Receive log messages by HTTP POST.", "webhookrx")
