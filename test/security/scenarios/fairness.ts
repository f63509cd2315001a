import { quantile } from '../../../scripts/bench/statistics.ts'
import { type Guarantee, noneOf } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { newSigner } from '../../support/issuer/signer.ts'
import { startModelServer } from '../../support/model-server/model-server.ts'
import type { Attack, AttackPlan, Form, Measured, Size, Surroundings, Tenant } from '../fairness/attack.ts'
import { ATTACKS, LIMITS } from '../fairness/attacks.ts'
import { answerPatiently, prepareTenant, useService } from '../fairness/neighbour.ts'
import { AttackedServer } from '../fairness/server.ts'

const MAX_SLOWDOWN = 1.5
const MAX_GROWTH_MIB = 400
const MAX_DISK_MIB = 1_024
const FORMS: readonly Form[] = ['standalone', 'cluster']

/** Two tenants of one server. One takes as much as it can get, in one way after the other; the other one works on. */
export const fairness: Scenario = {
  id: 'P20',
  promise: 'one tenant cannot take the house: what another one does is not refused and hardly slower, whatever it does',
  run,
}

async function run({ isFull, say }: ScenarioOptions): Promise<Guarantee[]> {
  if (!isFull) {
    const half = (form: number) => ATTACKS.filter((_, i) => i % FORMS.length === form)
    const all = FORMS.map((form, i) => attackForm(form, { attacks: half(i), rounds: 1, size: 'short', say }))
    return (await Promise.all(all)).flat()
  }
  const guarantees: Guarantee[] = []
  for (const form of FORMS)
    guarantees.push(...(await attackForm(form, { attacks: ATTACKS, rounds: 40, size: 'full', say })))
  return guarantees
}

type Work = { attacks: readonly AttackPlan[]; rounds: number; size: Size; say(line: string): void }

async function attackForm(form: Form, work: Work): Promise<Guarantee[]> {
  const issuer = await Issuer.start([await newSigner('RS256', 'r1')])
  const model = await startModelServer()
  model.otherwise(answerPatiently)
  try {
    await using server = await AttackedServer.start(
      { form, size: work.size },
      {
        ...LIMITS[work.size],
        MODEL_PROVIDER: 'openai-compatible',
        MODEL: 'm',
        MODEL_BASE_URL: model.url,
        OIDC_ISSUER: issuer.url,
        OIDC_AUDIENCE: AUDIENCE,
      },
    )
    const as = async (name: string, address: string): Promise<Tenant> => {
      const headers = { authorization: `Bearer ${await issuer.token(name)}`, 'x-forwarded-for': address }
      return prepareTenant({ url: server.url, headers }, model)
    }
    const scene = {
      server,
      hostile: await as('globex', '203.0.113.1'),
      other: await as('acme', '203.0.113.2'),
      form,
      model,
      size: work.size,
    }
    return await attackInTurn(scene, work)
  } finally {
    await model.close()
    await issuer.close()
  }
}

type Scene = Surroundings & { server: AttackedServer; hostile: Tenant; other: Tenant }

async function attackInTurn(scene: Scene, { attacks, rounds, say }: Work): Promise<Guarantee[]> {
  const { server, hostile, other, form } = scene
  await useService(other, 3) // Loads the code.
  const before = { memory: server.memoryMiB, disk: await server.diskMiB() }
  const peak = { ...before }
  const guarantees: Guarantee[] = []
  for (const plan of attacks) {
    const name = `${form}, ${plan.title}`
    say(name)
    const use = (await plan.prepare?.(other)) ?? ((count) => useService(other, count))
    const undisturbed = await use(rounds)
    const attack = await plan.begin(hostile, scene)
    const measured = await use(rounds)
    peak.memory = Math.max(peak.memory, server.memoryMiB)
    peak.disk = Math.max(peak.disk, await server.diskMiB())
    if (plan.isShared !== true) guarantees.push(limitsMet(name, attack))
    await attack.end()
    guarantees.push(...judge(name, { measured, undisturbed }))
  }
  const growth = (title: string, value: number, atMost: number) => ({ title, value, unit: ' MiB', goal: { atMost } })
  return [
    ...guarantees,
    growth(`${form}, memory of a process`, peak.memory - before.memory, MAX_GROWTH_MIB),
    growth(`${form}, disk`, peak.disk - before.disk, MAX_DISK_MIB),
  ]
}

const limitsMet = (name: string, { refused }: Attack): Guarantee => ({
  title: `${name}: limits that the attack met`,
  value: refused(),
  unit: '',
  goal: { atLeast: 1 },
})

type Uses = { measured: Measured; undisturbed: Measured }

function judge(name: string, { measured, undisturbed }: Uses): Guarantee[] {
  const refusals = noneOf(`${name}: refusals of the other tenant`, [...undisturbed.refusals, ...measured.refusals])
  if (measured.runMs.length === 0 || undisturbed.runMs.length === 0) return [refusals]
  const [p99, usual] = [quantile(measured.runMs, 0.99), quantile(undisturbed.runMs, 0.99)]
  const detail = `${p99.toFixed(0)} ms instead of ${usual.toFixed(0)} ms`
  return [
    refusals,
    { title: `${name}: p99 of its work`, value: p99 / usual, unit: ' x', goal: { atMost: MAX_SLOWDOWN }, detail },
  ]
}
