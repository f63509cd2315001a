import { money, short } from '../../base/format.ts'
import type { Overview } from '../../base/overview.ts'
import { Bar, Missing, Section } from './section.tsx'

type Part = Overview['tenants']

/** Those that have spent most today. */
export const Tenants = ({ tenants }: { tenants: Part }) => (
  <Section title="Tenants by spend today (UTC)" aside={<a href="/tenants">{allOf(tenants)}</a>}>
    {tenants === null && <Missing>Gateways know the tenants: open the page of one.</Missing>}
    {tenants?.count === 0 && <Missing>No tenant has run anything today.</Missing>}
    {tenants !== null && tenants.count > 0 && <Table {...tenants} />}
    {tenants?.incomplete === true && <Missing>Some processes have not answered: there is more.</Missing>}
  </Section>
)

const allOf = (tenants: Part) =>
  tenants === null || tenants.count === 0
    ? 'All tenants'
    : `All tenants (${tenants.count}${tenants.has_more ? ' and more' : ''})`

const Table = ({ most_spent: tenants }: NonNullable<Part>) => (
  <div class="table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>Tenant</th>
          <th>Spent</th>
          <th class="right">Tokens</th>
          <th class="right">Runs</th>
          <th class="right">Live</th>
        </tr>
      </thead>
      <tbody>
        {tenants.map((each) => (
          <tr key={each.tenant}>
            <td>
              <strong>{each.tenant}</strong>
            </td>
            <td>
              {each.usd_per_day === null ? (
                <span class="number">{money(each.usd_today)}</span>
              ) : (
                <Bar
                  used={each.usd_today}
                  of={each.usd_per_day}
                  text={`${money(each.usd_today)} of ${money(each.usd_per_day)}`}
                />
              )}
            </td>
            <td class="right number">{short(each.tokens_today)}</td>
            <td class="right number">
              {short(each.runs_today)}
              {each.failed_today > 0 && <span class="bad-text">, {each.failed_today} failed</span>}
            </td>
            <td class="right number">
              {each.live_runs} live{each.waiting_runs > 0 && `, ${each.waiting_runs} waiting`}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
