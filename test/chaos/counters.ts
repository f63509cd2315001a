import type { CounterName, GaugeName } from '../../shared/kernel/metrics.ts'
import type { Member } from './world.ts'

/** The sum of a counter over the `/metrics` of these processes. */
export const sumCounter = (members: readonly Member[], name: CounterName): Promise<number> =>
  sumOf(members, `${name}_total`)

/** The sum of a gauge that is one number. */
export const sumGauge = (members: readonly Member[], name: GaugeName): Promise<number> => sumOf(members, name)

async function sumOf(members: readonly Member[], name: string): Promise<number> {
  const values = await Promise.all(members.map((member) => valueOf(member, name)))
  return values.reduce((sum, value) => sum + value, 0)
}

async function valueOf({ proc }: Member, name: string): Promise<number> {
  const { ops_url: url } = JSON.parse(proc.ready[0]) as { ops_url: string }
  const text = await (await fetch(`${url.replace('//0.0.0.0:', '//127.0.0.1:')}/metrics`)).text()
  const value = new RegExp(`^agent_engine_${name} (\\d+)$`, 'm').exec(text)?.[1]
  if (value === undefined) throw new Error(`${proc.name} has no ${name}`)
  return Number(value)
}
