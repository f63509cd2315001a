import { newSigners } from '../../../auth/setup.ts'
import type { Guarantee } from '../../../harness/guarantee.ts'
import { noneOf } from '../../../harness/guarantees.ts'
import { newSigner, type Signer } from '../../../support/issuer/signer.ts'
import { type ClockedGateway, openClockedGateway } from './clocked-gateway.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const OUTAGE_MINUTES = 60
const ROTATION_SECS = 60
const LAST_401_SECS = 30
const REMOVED_MINUTES = 10

/** P15 by a clock that is moved by hand: an hour without the issuer, and its keys' rotation and removal. */
export async function passTime(): Promise<Guarantee[]> {
  const signers = await newSigners()
  return [...(await outlive(signers)), ...(await rotate(signers)), ...(await remove(signers))]
}

/** Each minute of the outage one token that is known already and one that is new. */
async function outlive(signers: readonly Signer[]): Promise<Guarantee[]> {
  await using gateway = await openClockedGateway(signers)
  const { door, issuer, clock } = gateway
  const known = await issuer.token()
  const fresh = await tokensOf(gateway, OUTAGE_MINUTES + 1)
  await door.status(known)
  await issuer.down()
  const refused: string[] = []
  for (const [minute, token] of fresh.entries()) {
    const answers = await door.statuses([known, token])
    for (const status of answers) if (status !== 200) refused.push(`${status} in minute ${minute}`)
    clock.pass(MINUTE)
  }
  const promised = noneOf('valid tokens refused in an hour without the issuer', refused)
  return [{ ...promised, detail: promised.detail || `of ${fresh.length * 2}` }]
}

async function rotate(signers: readonly Signer[]): Promise<Guarantee[]> {
  await using gateway = await openClockedGateway(signers)
  const { door, issuer, clock } = gateway
  const old = await issuer.token()
  await door.status(old)
  issuer.rotate([await newSigner('RS256', 'r2'), ...signers])
  const fresh = await tokensOf(gateway, 10)
  let lastRefusedSecs = 0
  for (let second = 0; second < ROTATION_SECS; second++) {
    const answers = await door.statuses([old, ...fresh])
    if (answers.some((status) => status !== 200)) lastRefusedSecs = second + 1
    clock.pass(SECOND)
  }
  return [atMost('after a rotation the last 401 of a valid token within', lastRefusedSecs, ' s', LAST_401_SECS)]
}

/** No token of a new key comes, which would have the keys fetched early. */
async function remove(signers: readonly Signer[]): Promise<Guarantee[]> {
  await using gateway = await openClockedGateway(signers)
  const { door, issuer, clock } = gateway
  const known = await issuer.token('acme', 'ES256')
  const never = await issuer.token('globex', 'ES256')
  await door.status(known)
  issuer.rotate([await newSigner('ES256', 'e2')])
  let minutes = 0
  let answers = [200, 200]
  for (; minutes <= 2 * REMOVED_MINUTES && answers.includes(200); minutes++) {
    answers = await door.statuses([known, never])
    clock.pass(MINUTE)
  }
  const detail = `answered ${answers.join(' and ')}, known before and new`
  return [{ ...atMost('a removed key is refused within', minutes - 1, ' min', REMOVED_MINUTES), detail }]
}

const tokensOf = ({ issuer }: ClockedGateway, count: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => issuer.token()))

const atMost = (title: string, value: number, unit: string, limit: number): Guarantee => ({
  title,
  value,
  unit,
  goal: { atMost: limit },
})
