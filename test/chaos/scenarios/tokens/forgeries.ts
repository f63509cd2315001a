import { allOf, type Guarantee, noneOf } from '../../../harness/guarantee.ts'
import type { Issuer } from '../../../support/issuer/issuer.ts'
import { json } from '../../../support/issuer/misbehaviour.ts'
import { forgedClasses } from '../../../tenancy/auth/forged-classes.ts'
import { createForger, type Forger } from '../../../tenancy/auth/forger.ts'
import type { TokenProbe } from './token-probe.ts'

const CLASSES = 60

/** Creates a forger whose keys the issuer publishes from now on. */
export async function forgerFor(issuer: Issuer): Promise<Forger> {
  const forger = await createForger(issuer.url)
  issuer.misbehave(json({ keys: forger.published }), '/jwks')
  return forger
}

/** P15: no gateway accepts a forged token, and all accept the valid tokens that the forged ones are derived from. */
export async function tryForgeries(forger: Forger, probes: readonly TokenProbe[]): Promise<Guarantee[]> {
  const { rsa, ec, ec384, ec512, ed, pinned } = forger.signers
  const valid = [rsa, ec, ec384, ec512, ed, pinned].map((by) => forger.token({ by }))
  const forged = forgedClasses(forger)
  const accepted: string[] = []
  const odd: string[] = []
  let validAccepted = 0
  for (const probe of probes) {
    validAccepted += (await probe.statuses(valid)).filter((status) => status === 200).length
    const answers = await probe.statuses(forged.map(([, , token]) => token))
    for (const [i, status] of answers.entries()) {
      if (status < 400) accepted.push(`${forged[i]?.[0]}: ${status}`)
      else if (status !== 401) odd.push(`${forged[i]?.[0]}: ${status}`)
    }
  }
  return [
    allOf('valid tokens accepted', validAccepted, valid.length * probes.length),
    { ...allOf('classes of forged tokens', forged.length, CLASSES), detail: `at ${probes.length} gateways` },
    noneOf('forged tokens accepted', accepted),
    noneOf('forged tokens not answered 401', odd),
  ]
}
