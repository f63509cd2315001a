import { type Guarantee, noneOf } from '../../../harness/guarantee.ts'
import { newSigner, type Signer } from '../../../support/issuer/signer.ts'
import { newSigners } from '../../../tenancy/auth/setup.ts'
import { type ClockedGateway, openClockedGateway } from './clocked-gateway.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const OUTAGE_MINUTES = 60
const ROTATION_SECS = 60
const LAST_401_SECS = 30
const REMOVED_MINUTES = 10

/** P15 with a manual clock: an hour without the issuer, and the rotation and removal of its keys. */
export async function tryOverTime(): Promise<Guarantee[]> {
  const signers = await newSigners()
  return [...(await tryOutage(signers)), ...(await rotate(signers)), ...(await remove(signers))]
}

/** Sends a known and a new token in each minute of an outage. */
async function tryOutage(signers: readonly Signer[]): Promise<Guarantee[]> {
  await using gateway = await openClockedGateway(signers)
  const { probe, issuer, clock } = gateway
  const known = await issuer.token()
  const fresh = await tokensOf(gateway, OUTAGE_MINUTES + 1)
  await probe.status(known)
  await issuer.down()
  const refused: string[] = []
  for (const [minute, token] of fresh.entries()) {
    const answers = await probe.statuses([known, token])
    for (const status of answers) if (status !== 200) refused.push(`${status} in minute ${minute}`)
    clock.pass(MINUTE)
  }
  const guarantee = noneOf('valid tokens refused in an hour without the issuer', refused)
  return [{ ...guarantee, detail: guarantee.detail || `of ${fresh.length * 2}` }]
}

async function rotate(signers: readonly Signer[]): Promise<Guarantee[]> {
  await using gateway = await openClockedGateway(signers)
  const { probe, issuer, clock } = gateway
  const old = await issuer.token()
  await probe.status(old)
  issuer.rotate([await newSigner('RS256', 'r2'), ...signers])
  const fresh = await tokensOf(gateway, 10)
  let lastRefusedSecs = 0
  for (let second = 0; second < ROTATION_SECS; second++) {
    const answers = await probe.statuses([old, ...fresh])
    if (answers.some((status) => status !== 200)) lastRefusedSecs = second + 1
    clock.pass(SECOND)
  }
  return [atMost('last 401 of a valid token after a rotation', lastRefusedSecs, ' s', LAST_401_SECS)]
}

/** Removes a key. No token of a new key is sent, since it would cause an early key fetch. */
async function remove(signers: readonly Signer[]): Promise<Guarantee[]> {
  await using gateway = await openClockedGateway(signers)
  const { probe, issuer, clock } = gateway
  const known = await issuer.token('acme', 'ES256')
  const never = await issuer.token('globex', 'ES256')
  await probe.status(known)
  issuer.rotate([await newSigner('ES256', 'e2')])
  let minutes = 0
  let answers = [200, 200]
  for (; minutes <= 2 * REMOVED_MINUTES && answers.includes(200); minutes++) {
    answers = await probe.statuses([known, never])
    clock.pass(MINUTE)
  }
  const detail = `answered ${answers.join(' and ')}, known before and new`
  return [{ ...atMost('time until a removed key is refused', minutes - 1, ' min', REMOVED_MINUTES), detail }]
}

const tokensOf = ({ issuer }: ClockedGateway, count: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => issuer.token()))

const atMost = (title: string, value: number, unit: string, limit: number): Guarantee => ({
  title,
  value,
  unit,
  goal: { atMost: limit },
})
