import type { CustomerRun } from '../../ledger/customer-load.ts'
import { type Loading, repeat } from './runs.ts'

/** Clients that run for customers. Every run has a different prompt; none is read twice. */
export async function serveCustomers(
  loading: Loading,
  { name, customers }: { name: string; customers: readonly string[] },
) {
  const { world } = loading
  const runs: CustomerRun[] = []
  await repeat(loading, async (random, n) => {
    const customer = random.pick(customers)
    const prompt = `/sleep ${random.between(0, 1_500)}\n/say answer ${name} ${n}`
    const body = { prompt, customer_id: customer }
    const stream = world.stream(random.pick(world.gateways), { path: '/agent/run', body, customer })
    const ended = await stream.ended
    if (!stream.isRefused) runs.push({ customer, prompt, stream, ended })
  })
  return runs
}
