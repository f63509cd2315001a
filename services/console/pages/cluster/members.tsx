import { duration } from '../../base/format.ts'
import type { Overview } from '../../base/overview.ts'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago } from '../../parts/time.tsx'
import { Bar, Missing, Section } from './section.tsx'

type Member = NonNullable<Overview['members']>[number]

/** The processes, and whether all have the same version. */
export function Members({ members }: { members: Overview['members'] }) {
  if (members === null) return <NotRead />
  const versions = new Set(members.flatMap(({ version }) => version ?? []))
  return (
    <Section
      title="Processes"
      aside={
        <span class="small soft">
          {versions.size > 1 ? `${versions.size} versions` : `version ${[...versions].join()}`}
        </span>
      }
    >
      <div class="table-wrap">
        <table class="table cards">
          <thead>
            <tr>
              <th>Process</th>
              <th>State</th>
              <th>Load</th>
              <th>Version</th>
              <th>Started</th>
              <th class="right">Lease left</th>
            </tr>
          </thead>
          <tbody>
            {members.map((member) => (
              <Row key={member.id} member={member} isOdd={versions.size > 1} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  )
}

const NotRead = () => (
  <Section title="Processes">
    <Missing>The members cannot be read at the moment.</Missing>
  </Section>
)

const Row = ({ member, isOdd }: { member: Member; isOdd: boolean }) => {
  const { id, role, state, load, capacity, version, since, pid, lease_ms: leaseMs } = member
  return (
    <tr>
      <td>
        <strong>{role}</strong> <code class="soft">{id}</code>
      </td>
      <td>
        <StateBadge state={leaseMs !== null && leaseMs <= 0 ? 'silent' : state} />
      </td>
      <td>
        {capacity === null ? (
          <span class="number">{load} streams</span>
        ) : (
          <Bar used={load} of={capacity} text={`${load} of ${capacity}`} />
        )}
      </td>
      <td>{version === null ? '–' : <span class={isOdd ? 'badge warn' : 'number'}>{version}</span>}</td>
      <td>
        {since === null ? '–' : <Ago at={since} />} <span class="small soft">process {pid}</span>
      </td>
      <td class="right number">{leaseMs === null ? 'none' : duration(Math.max(0, leaseMs))}</td>
    </tr>
  )
}
