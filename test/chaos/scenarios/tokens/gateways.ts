import { setTimeout as sleep } from 'node:timers/promises'
import { type Guarantee, none, slowest } from '../../../harness/guarantee.ts'
import type { Random } from '../../../harness/seed.ts'
import { AUDIENCE, Issuer } from '../../../support/issuer/issuer.ts'
import { json } from '../../../support/issuer/misbehaviour.ts'
import { newSigner } from '../../../support/issuer/signer.ts'
import type { Forger } from '../../../tenancy/auth/forger.ts'
import { now } from '../../history.ts'
import { World } from '../../world.ts'
import { forgerFor, tryForgeries } from './forgeries.ts'
import { TokenProbe } from './token-probe.ts'

const GATEWAYS = 2
/** D3.1: the least time between two key fetches of a process because of tokens with unknown keys. */
const MISS_SECS = 10
const ROTATED_WITHIN_MS = 30_000
const ASK_EVERY_MS = 500

type Scene = { issuer: Issuer; forger: Forger; probes: readonly TokenProbe[] }

/** P15 with gateway processes in real time: forged tokens, unknown key ids, an unreachable issuer, and a key rotation. */
export async function tryGateways(random: Random, kids: number): Promise<Guarantee[]> {
  const issuer = await Issuer.start([])
  const env = { AUTH_MODE: 'enforced', OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE }
  await using world = await World.open({ random, gateways: GATEWAYS, workers: 0, env })
  const probes = world.gateways.map(({ url }) => new TokenProbe(url))
  const scene = { issuer, forger: await forgerFor(issuer), probes }
  try {
    const forged = await tryForgeries(scene.forger, probes)
    const unreachable = await stopIssuer(scene)
    const fetches = new FetchCount(issuer)
    const [flooded, rotated] = await Promise.all([floodKids(scene, kids), rotate(scene)])
    return [...forged, unreachable, flooded, ...rotated, fetches.guarantee(kids)]
  } finally {
    for (const probe of probes) probe[Symbol.dispose]()
    await issuer.close()
  }
}

/** Counts the key fetches of the gateways and the time they took. */
class FetchCount {
  readonly #issuer: Issuer
  readonly #before: number
  readonly #from = now()

  constructor(issuer: Issuer) {
    this.#issuer = issuer
    this.#before = issuer.keyFetches
  }

  guarantee(kids: number): Guarantee {
    const secs = (now() - this.#from) / 1000
    const fetches = this.#issuer.keyFetches - this.#before
    const spans = 1 + Math.floor(secs / MISS_SECS)
    const title = `key fetches per ${MISS_SECS} s and gateway under ${kids} unknown key ids`
    const detail = `${fetches} by ${GATEWAYS} gateways in ${secs.toFixed(1)} s`
    return { title, value: fetches / GATEWAYS / spans, unit: '', goal: { atMost: 1 }, detail }
  }
}

/** Sends tokens that are valid except for an unpublished key id. */
async function floodKids({ forger: { token, signers }, probes }: Scene, kids: number): Promise<Guarantee> {
  const tokens = Array.from({ length: kids }, (_, i) => token({ by: signers.ed, header: { kid: `k${i}` } }))
  const answers = (await Promise.all(probes.map((probe) => probe.statuses(tokens)))).flat()
  const others = answers.filter((status) => status !== 401)
  return none('tokens of unknown key ids not answered 401', others.length, `of ${answers.length}`)
}

async function stopIssuer({ issuer, forger, probes }: Scene): Promise<Guarantee> {
  const { rsa, ec, ed } = forger.signers
  const known = forger.token()
  for (const probe of probes) await probe.status(known)
  await issuer.down()
  const fresh = [rsa, ec, ed].map((by) => forger.token({ by, claims: { sub: 'fresh' } }))
  const answers = (await Promise.all(probes.map((probe) => probe.statuses([known, ...fresh])))).flat()
  await issuer.up()
  const refused = answers.filter((status) => status !== 200)
  const title = 'valid tokens refused while the issuer is unreachable'
  return none(title, refused.length, `of ${answers.length} ${refused.join(' ')}`)
}

/** Publishes another key and sends tokens of both, while the flood of unknown key ids continues. */
async function rotate({ issuer, forger, probes }: Scene): Promise<Guarantee[]> {
  const next = await newSigner('RS256', 'next')
  issuer.misbehave(json({ keys: [next.publicJwk, ...forger.published] }), '/jwks')
  const tokens = [forger.token(), forger.token({ by: next })]
  const from = now()
  const waits = probes.map(async (probe) => {
    while ((await probe.statuses(tokens)).some((status) => status !== 200)) {
      if (now() - from > ROTATED_WITHIN_MS) return Number.POSITIVE_INFINITY
      await sleep(ASK_EVERY_MS)
    }
    return now() - from
  })
  const waited = await Promise.all(waits)
  const later = (await Promise.all(probes.map((probe) => probe.statuses(tokens)))).flat()
  return [
    slowest('time until every gateway accepts a new key', waited, ROTATED_WITHIN_MS),
    none('401s of valid tokens after that', later.filter((status) => status !== 200).length),
  ]
}
