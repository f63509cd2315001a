import { forgedClasses } from '../../../auth/forged-classes.ts'
import { createForger, type Forger } from '../../../auth/forger.ts'
import type { Guarantee } from '../../../harness/guarantee.ts'
import { noneOf } from '../../../harness/guarantees.ts'
import type { Issuer } from '../../../support/issuer/issuer.ts'
import { json } from '../../../support/issuer/misbehaviour.ts'
import { allOf } from '../../figures.ts'
import type { Door } from './door.ts'

const CLASSES = 60

/** The issuer publishes a forger's keys from now on. */
export async function forgerFor(issuer: Issuer): Promise<Forger> {
  const forger = await createForger(issuer.url)
  issuer.misbehave(json({ keys: forger.published }), '/jwks')
  return forger
}

/** P15: none of the forged tokens is accepted, at any of the doors, while what they are made from is. */
export async function tryForgeries(forger: Forger, doors: readonly Door[]): Promise<Guarantee[]> {
  const { rsa, ec, ec384, ec512, ed, pinned } = forger.signers
  const good = [rsa, ec, ec384, ec512, ed, pinned].map((by) => forger.token({ by }))
  const forged = forgedClasses(forger)
  const accepted: string[] = []
  const odd: string[] = []
  let goodOnes = 0
  for (const door of doors) {
    goodOnes += (await door.statuses(good)).filter((status) => status === 200).length
    const answers = await door.statuses(forged.map(([, , token]) => token))
    for (const [i, status] of answers.entries()) {
      if (status < 400) accepted.push(`${forged[i]?.[0]}: ${status}`)
      else if (status !== 401) odd.push(`${forged[i]?.[0]}: ${status}`)
    }
  }
  return [
    allOf('good tokens accepted', goodOnes, good.length * doors.length),
    { ...allOf('classes of forged tokens', forged.length, CLASSES), detail: `at ${doors.length} gateways` },
    noneOf('forged tokens accepted', accepted),
    noneOf('forged tokens answered otherwise than 401', odd),
  ]
}
