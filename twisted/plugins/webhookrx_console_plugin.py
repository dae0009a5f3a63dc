"""
Makes C{twistd webhookrx-console} known to Twisted. Nothing of webhookrx is imported before it is asked for: a mistake
there must not take the command away without a word.
"""

from twisted.application.service import ServiceMaker

webhookrx_console_service = ServiceMaker(
    "webhookrx-console", "webhookrx.console.tap", "Manage many webhookrx routers from one place.", "webhookrx-console"
)
