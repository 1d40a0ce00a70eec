"""How the endpoint behaved over all the questions: how long answers took, and what failed now and then."""

import re
from collections import Counter
from statistics import median

from pathnav.model.probe_chart import Chart
from pathnav.model.probe_finding import Finding, Result

_KIND = re.compile(r"[^:(]*")  # of a sentence, without what the server said in it
_SLOW_S = 30.0


def probe_steady(chart: Chart) -> None:
    """Sum up what went on along the way; asks nothing."""
    line = chart.line
    failed = Counter(_KIND.match(sentence)[0].strip() for sentence in line.passing)  # type: ignore[index]
    facts = {
        "failed": dict(sorted(failed.items())),
        "median_s": round(median(line.seconds), 3) if line.seconds else None,
        "longest_s": round(max(line.seconds), 3) if line.seconds else None,
    }
    if line.outage is not None:
        change = "check the key" if line.outage.refuses_key else "look at the server's log, and at its load"
        chart.add(Finding("steadiness", Result.NO, line.end, "a run would wait, then stop", change, facts))
        return
    took = f"an answer took {facts['median_s']:.1f} s in the median, {facts['longest_s']:.1f} s at most"
    if not failed:
        means = (
            "a run will take long; --workers asks for several episodes at a time"
            if median(line.seconds) > _SLOW_S
            else ""
        )
        chart.add(Finding("steadiness", Result.YES, f"no request failed in passing; {took}", means, facts=facts))
        return
    kinds = ", ".join(f"{kind} ({count})" for kind, count in failed.most_common())
    seen = f"{len(line.passing)} of {line.calls} requests failed in a way that may pass: it {kinds}; {took}"
    means = "a run tries such requests again, up to four times each; some episodes may end as infra_error all the same"
    chart.add(Finding("steadiness", Result.PARTLY, seen, means, "look at the server's log, and at its load", facts))
