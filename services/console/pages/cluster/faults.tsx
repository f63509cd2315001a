import { short } from '../../base/format.ts'
import type { Overview } from '../../base/overview.ts'
import { Missing, Section } from './section.tsx'

const FAULTS: Readonly<Record<string, string>> = {
  gaps_asked: 'Gaps in streams',
  gaps_repaired: 'Gaps that were closed',
  gaps_lost: 'Streams that ended with a gap',
  streams_lost: 'Streams whose worker or relay was lost',
  slow_consumers: 'Readers that were too slow',
  stale_frames_dropped: 'Frames of removed processes, dropped',
  fence_refusals: 'Effects refused by a fence',
  run_records_lost: 'Records of runs that were lost',
}

/** The failures of runs in this process. Each process counts its own failures; a monitoring system adds them up. */
export const Failures = ({ failures }: Pick<Overview, 'failures'>) => (
  <Section title="Failures by code" aside={<Since />}>
    {failures.length === 0 && <Missing>No run that ended here has failed.</Missing>}
    <dl class="counts">
      {failures.map(({ code, count }) => (
        <div key={code}>
          <dt>
            <code>{code}</code>
          </dt>
          <dd class="number">{short(count)}</dd>
        </div>
      ))}
    </dl>
  </Section>
)

/** How often this process has lost messages, repaired gaps, or not acted because its lease had ended. */
export const Faults = ({ faults }: Pick<Overview, 'faults'>) => (
  <Section title="Gaps and fences" aside={<Since />}>
    <dl class="counts">
      {Object.entries(FAULTS).map(([name, text]) => (
        <div key={name} class={faults[name] === 0 ? 'soft' : ''}>
          <dt>{text}</dt>
          <dd class="number">{short(faults[name] ?? 0)}</dd>
        </div>
      ))}
    </dl>
  </Section>
)

const Since = () => <span class="small soft">this process, since its start</span>
