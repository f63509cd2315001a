import { caller } from '../../api/caller.ts'
import { setFilters } from '../../base/router.ts'
import type { Usage } from './read-usage.ts'
import { changeOf, forecastOf, monthOf, type Span } from './spans.ts'
import { addUp, MEASURES, type Measure, measure, shown } from './sums.ts'

type HeadlineProps = { usage: Usage; name: Measure; span: Span; now: number }

/** The figure of the chosen measure, compared with the preceding time of the same length; and the other measures to choose. */
export function Headline({ usage, name, span, now }: HeadlineProps) {
  const [all, before] = [addUp(usage.totals), addUp(usage.before)]
  const { of, show } = measure(name)
  const earlier = of(before)
  const change = changeOf(of(all), earlier, name === 'cache')
  return (
    <div class="usage-headline">
      <div class="measures" role="group" aria-label="Measure">
        {(Object.keys(MEASURES) as Measure[]).map((each) => (
          <button
            key={each}
            type="button"
            class="button plain"
            aria-pressed={each === name}
            onClick={() => setFilters({ measure: each })}
          >
            <span class="small">{MEASURES[each].label}</span>
            <b class="number">{shown(each, MEASURES[each].of(all))}</b>
          </button>
        ))}
      </div>
      <p class="figure">
        <strong class="number">{shown(name, of(all))}</strong>
        <span class="soft">
          {change !== undefined && earlier !== undefined
            ? `${change} against ${show(earlier)}`
            : 'Nothing to compare with'}{' '}
          in {span.before}. {span.bucket === 'day' ? 'Today' : 'This hour'} goes on.
        </span>
      </p>
      <Forecast month={usage.month} name={name} now={now} />
    </div>
  )
}

/** The expected total of the month, beside the sum of the daily budgets if the tenant has a budget. */
function Forecast({ month, name, now }: { month: Usage['month']; name: Measure; now: number }) {
  const { of, show, budget: limit } = measure(name)
  if (limit === undefined) return null
  const used = of(addUp(month)) ?? 0
  const forecast = forecastOf(used, now)
  const budget = caller().value?.limits?.[limit] ?? undefined
  const { days } = monthOf(now)
  return (
    <p class="soft">
      This month (UTC): {show(used)}
      {forecast !== undefined && (
        <>
          , forecast <b class="number">{show(forecast)}</b>
        </>
      )}
      {budget !== undefined && `, of a budget of ${show(budget * days)}: ${days} days of ${show(budget)}`}.
      {forecast !== undefined && (
        <span class="small"> The forecast is the mean of its days until now, for all {days}.</span>
      )}
    </p>
  )
}
