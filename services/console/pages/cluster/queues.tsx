import { duration, short } from '../../base/format.ts'
import type { Overview } from '../../base/overview.ts'
import { Missing, Section } from './section.tsx'

/** The work that waits for an executor. */
export const Queues = ({ queues, form }: Pick<Overview, 'queues' | 'form'>) => (
  <Section title="Queues" aside={<a href="/queues">{form === 'cluster' ? 'Open the dashboard' : 'Failed jobs'}</a>}>
    {queues === null ? (
      <Missing>The queue cannot be read at the moment.</Missing>
    ) : (
      <div class="table-wrap">
        <table class="table">
          <thead>
            <tr>
              <th>Work</th>
              <th class="right">Waiting</th>
              <th class="right">Oldest</th>
              <th class="right">Active</th>
              <th class="right">Failed</th>
            </tr>
          </thead>
          <tbody>
            {queues.map(({ kind, waiting, active, failed, oldest_waiting_ms: oldestMs }) => (
              <tr key={kind}>
                <td>{NAMES[kind] ?? kind}</td>
                <td class="right number">{short(waiting)}</td>
                <td class="right number">{waiting === 0 ? '–' : duration(oldestMs)}</td>
                <td class="right number">{short(active)}</td>
                <td class="right number">{short(failed)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </Section>
)

const NAMES: Readonly<Record<string, string>> = { flow: 'Flows', plan: 'Plans', schedule: 'Schedules' }
