"""
The questions that a sender asks before it sends, and the answers that it wants to hear.
"""

from __future__ import annotations

from webhookrx.senders.handshakes.answers import AnswerFailed, SenderAnswers
from webhookrx.senders.handshakes.handshakes import LARGEST_QUESTION, HandshakeAnswer, Handshakes

__all__ = ["LARGEST_QUESTION", "AnswerFailed", "HandshakeAnswer", "Handshakes", "SenderAnswers"]
