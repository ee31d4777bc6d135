"""What-if: recorded demand through the schedulers' rules under other quotas, outcomes side by side."""

from gpureport.whatif.compare import Answer, answer, past_use
from gpureport.whatif.question import Question, parse_question
from gpureport.whatif.text import notes, print_answer

__all__ = ["Answer", "Question", "answer", "notes", "parse_question", "past_use", "print_answer"]
