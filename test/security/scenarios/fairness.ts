import { rssMiB } from '../../../scripts/bench/proc.ts'
import { quantile } from '../../../scripts/bench/statistics.ts'
import { type Guarantee, noneOf } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { newSigner } from '../../support/issuer/signer.ts'
import { ATTACKS, type Attack, LIMITS } from '../fairness/attacks.ts'
import { type Measured, type Tenant, useService } from '../fairness/neighbour.ts'
import { Processes, type Server } from '../processes.ts'

const MAX_SLOWDOWN = 1.5
const MAX_GROWTH_MIB = 400

/** Two tenants of one server. One takes as much as it can get, in one way after the other; the other one works on. */
export const fairness: Scenario = {
  id: 'P20',
  promise:
    'one tenant cannot take the house: the runs of another one are not refused and hardly slower, whatever it does',
  run,
}

async function run({ isFull, say }: ScenarioOptions): Promise<Guarantee[]> {
  const issuer = await Issuer.start([await newSigner('RS256', 'r1')])
  await using processes = new Processes({ ...LIMITS, OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE })
  try {
    const server = await processes.start('standalone')
    const as = async (name: string): Promise<Tenant> => ({
      url: server.url,
      headers: { authorization: `Bearer ${await issuer.token(name)}` },
    })
    return await attackInTurn({
      server,
      hostile: await as('globex'),
      other: await as('acme'),
      rounds: isFull ? 40 : 4,
      say,
    })
  } finally {
    await issuer.close()
  }
}

type Scene = { server: Server; hostile: Tenant; other: Tenant; rounds: number; say(line: string): void }

async function attackInTurn({ server, hostile, other, rounds, say }: Scene): Promise<Guarantee[]> {
  await useService(other, 3) // Loads the code.
  const before = rssMiB(server.pid)
  const guarantees: Guarantee[] = []
  let peak = before
  for (const [name, begin] of Object.entries(ATTACKS)) {
    say(name)
    const undisturbed = await useService(other, rounds)
    const attack = await begin(hostile)
    const measured = await useService(other, rounds)
    peak = Math.max(peak, rssMiB(server.pid))
    attack.end()
    guarantees.push(...judge(name, attack, { measured, undisturbed }))
  }
  const growth = { title: 'memory of the server', value: peak - before, unit: ' MiB', goal: { atMost: MAX_GROWTH_MIB } }
  return [...guarantees, growth]
}

type Runs = { measured: Measured; undisturbed: Measured }

function judge(name: string, { refused }: Attack, { measured, undisturbed }: Runs): Guarantee[] {
  const [p99, usual] = [quantile(measured.runMs, 0.99), quantile(undisturbed.runMs, 0.99)]
  const detail = `${p99.toFixed(0)} ms instead of ${usual.toFixed(0)} ms`
  return [
    { title: `${name}: limits that the attack met`, value: refused(), unit: '', goal: { atLeast: 1 } },
    noneOf(`${name}: refusals of the other tenant`, [...undisturbed.refusals, ...measured.refusals]),
    { title: `${name}: p99 of its runs`, value: p99 / usual, unit: ' x', goal: { atMost: MAX_SLOWDOWN }, detail },
  ]
}
