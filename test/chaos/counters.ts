import type { CounterName } from '../../shared/kernel/metrics.ts'
import type { Member } from './world.ts'

/** The sum of a counter over the `/metrics` of these processes. */
export async function sumCounter(members: readonly Member[], name: CounterName): Promise<number> {
  const counts = await Promise.all(members.map((member) => countOf(member, name)))
  return counts.reduce((sum, count) => sum + count, 0)
}

async function countOf({ proc }: Member, name: CounterName): Promise<number> {
  const { ops_url: url } = JSON.parse(proc.ready[0]) as { ops_url: string }
  const text = await (await fetch(`${url.replace('//0.0.0.0:', '//127.0.0.1:')}/metrics`)).text()
  const value = new RegExp(`^agent_engine_${name}_total (\\d+)$`, 'm').exec(text)?.[1]
  if (value === undefined) throw new Error(`${proc.name} has no counter ${name}`)
  return Number(value)
}
