import { setTimeout as sleep } from 'node:timers/promises'
import type { Forger } from '../../../auth/forger.ts'
import type { Guarantee } from '../../../harness/guarantee.ts'
import type { Random } from '../../../harness/seed.ts'
import { AUDIENCE, Issuer } from '../../../support/issuer/issuer.ts'
import { json } from '../../../support/issuer/misbehaviour.ts'
import { newSigner } from '../../../support/issuer/signer.ts'
import { none, slowest } from '../../figures.ts'
import { now } from '../../history.ts'
import { World } from '../../world.ts'
import { Door } from './door.ts'
import { forgerFor, tryForgeries } from './forgeries.ts'

const GATEWAYS = 2
/** D3.1: how often a process may ask for keys because of a token that no key verifies. */
const MISS_SECS = 10
const ROTATED_WITHIN_MS = 30_000
const ASK_EVERY_MS = 500

type Scene = { issuer: Issuer; forger: Forger; doors: readonly Door[] }

/** P15 at started gateways, in real time: forgeries, unknown kids, an issuer that goes away, and a rotation. */
export async function tryGateways(random: Random, kids: number): Promise<Guarantee[]> {
  const issuer = await Issuer.start([])
  const env = { AUTH_MODE: 'enforced', OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE }
  await using world = await World.open({ random, gateways: GATEWAYS, workers: 0, env })
  const doors = world.gateways.map(({ url }) => new Door(url))
  const scene = { issuer, forger: await forgerFor(issuer), doors }
  try {
    const forged = await tryForgeries(scene.forger, doors)
    const gone = await goAway(scene)
    const fetches = new FetchCount(issuer)
    const [flooded, rotated] = await Promise.all([floodKids(scene, kids), rotate(scene)])
    return [...forged, gone, flooded, ...rotated, fetches.promised(kids)]
  } finally {
    for (const door of doors) door[Symbol.dispose]()
    await issuer.close()
  }
}

/** Key fetches, and the time in which they may have been made. */
class FetchCount {
  readonly #issuer: Issuer
  readonly #before: number
  readonly #from = now()

  constructor(issuer: Issuer) {
    this.#issuer = issuer
    this.#before = issuer.keyFetches
  }

  promised(kids: number): Guarantee {
    const secs = (now() - this.#from) / 1000
    const fetches = this.#issuer.keyFetches - this.#before
    const spans = 1 + Math.floor(secs / MISS_SECS)
    const title = `key fetches in ${MISS_SECS} s and gateway under ${kids} unknown kids`
    const detail = `${fetches} by ${GATEWAYS} gateways in ${secs.toFixed(1)} s`
    return { title, value: fetches / GATEWAYS / spans, unit: '', goal: { atMost: 1 }, detail }
  }
}

/** Good tokens but for a kid that nobody has published. */
async function floodKids({ forger: { token, signers }, doors }: Scene, kids: number): Promise<Guarantee> {
  const tokens = Array.from({ length: kids }, (_, i) => token({ by: signers.ed, header: { kid: `k${i}` } }))
  const answers = (await Promise.all(doors.map((door) => door.statuses(tokens)))).flat()
  const others = answers.filter((status) => status !== 401)
  return none('tokens of unknown kids not answered 401', others.length, `of ${answers.length}`)
}

async function goAway({ issuer, forger, doors }: Scene): Promise<Guarantee> {
  const { rsa, ec, ed } = forger.signers
  const known = forger.token()
  for (const door of doors) await door.status(known)
  await issuer.down()
  const fresh = [rsa, ec, ed].map((by) => forger.token({ by, claims: { sub: 'fresh' } }))
  const answers = (await Promise.all(doors.map((door) => door.statuses([known, ...fresh])))).flat()
  await issuer.up()
  const refused = answers.filter((status) => status !== 200)
  const title = 'valid tokens refused by gateways whose issuer is gone'
  return none(title, refused.length, `of ${answers.length} ${refused.join(' ')}`)
}

/** A key more is published, and the tokens of both go on coming, as the flood does. */
async function rotate({ issuer, forger, doors }: Scene): Promise<Guarantee[]> {
  const next = await newSigner('RS256', 'next')
  issuer.misbehave(json({ keys: [next.publicJwk, ...forger.published] }), '/jwks')
  const tokens = [forger.token(), forger.token({ by: next })]
  const from = now()
  const waits = doors.map(async (door) => {
    while ((await door.statuses(tokens)).some((status) => status !== 200)) {
      if (now() - from > ROTATED_WITHIN_MS) return Number.POSITIVE_INFINITY
      await sleep(ASK_EVERY_MS)
    }
    return now() - from
  })
  const waited = await Promise.all(waits)
  const later = (await Promise.all(doors.map((door) => door.statuses(tokens)))).flat()
  return [
    slowest('until a new key is accepted everywhere', waited, ROTATED_WITHIN_MS),
    none('401s of valid tokens after that', later.filter((status) => status !== 200).length),
  ]
}
