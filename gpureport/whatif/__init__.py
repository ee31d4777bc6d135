"""What-if: replay of recorded demand under the schedulers' rules with other quotas, and comparison of the outcomes."""

from gpureport.whatif.compare import Answer, answer, past_use
from gpureport.whatif.question import Question, parse_question
from gpureport.whatif.text import notes, print_answer

__all__ = ["Answer", "Question", "answer", "notes", "parse_question", "past_use", "print_answer"]
