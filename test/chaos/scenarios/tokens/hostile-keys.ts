import type { RequestListener } from 'node:http'
import { newSigners } from '../../../auth/setup.ts'
import type { Guarantee } from '../../../harness/guarantee.ts'
import { noneOf } from '../../../harness/guarantees.ts'
import { AUDIENCE } from '../../../support/issuer/issuer.ts'
import { hang, json, stall, status, text } from '../../../support/issuer/misbehaviour.ts'
import { compact, newSigner, type Signer, signatureOf } from '../../../support/issuer/signer.ts'
import { allOf } from '../../figures.ts'
import { openClockedGateway } from './clocked-gateway.ts'

const MIB = 1024 * 1024
const MINUTE = 60_000

type Keys = { signers: readonly Signer[]; foreign: Signer }

type KeySet = readonly [name: string, listener: RequestListener]

/** P15 and reliability.md "IdP/JWKS": whatever an issuer sends in place of its keys, nobody is let in by it and nothing falls over. */
export async function sendHostileKeys(): Promise<Guarantee[]> {
  const signers = await newSigners()
  const foreign = await newSigner('RS256', 'foreign')
  const sets = hostileSets(signers)
  const outcomes = await Promise.all(sets.map(([name, listener]) => judge(name, listener, { signers, foreign })))
  const wrong = (what: 'letIn' | 'notUnavailable' | 'refused') => outcomes.flatMap((outcome) => outcome[what])
  return [
    allOf('hostile key sets', outcomes.length, sets.length),
    noneOf('tokens let in by a hostile key set', wrong('letIn')),
    noneOf('tokens on a cold start not answered 503', wrong('notUnavailable')),
    noneOf('valid tokens refused with good keys known', wrong('refused')),
  ]
}

/** Once on a cold start, and once with good keys known and due to be fetched again. */
async function judge(name: string, listener: RequestListener, { signers, foreign }: Keys) {
  await using gateway = await openClockedGateway(signers)
  const { door, issuer, clock } = gateway
  const good = await issuer.token()
  const later = await issuer.token()
  const forged = ['foreign', 'r1'].map((kid) => forge(issuer.url, kid, foreign))
  issuer.misbehave(listener, '/jwks')
  const cold = await door.statuses([good, ...forged])
  issuer.behave()
  clock.pass(MINUTE)
  const warm = await door.status(good)
  issuer.misbehave(listener, '/jwks')
  clock.pass(11 * MINUTE)
  const answers = await door.statuses([good, later])
  const forgedLater = await door.statuses(forged)
  const say = (statuses: readonly number[]) => statuses.map((code) => `${name}: ${code}`)
  return {
    letIn: say([...cold, ...forgedLater].filter((code) => code < 400)),
    notUnavailable: say(cold.filter((code) => code !== 503)),
    refused: say([warm, ...answers].filter((code) => code !== 200)),
  }
}

function forge(iss: string, kid: string, { privateKey }: Signer): string {
  const exp = Math.floor(Date.now() / 1000) + 7_200
  const claims = { iss, aud: AUDIENCE, sub: 'u1', exp, tenant_id: 'acme' }
  return compact({ alg: 'RS256', typ: 'JWT', kid }, claims, signatureOf('RS256', privateKey))
}

function hostileSets([, key]: readonly Signer[]): KeySet[] {
  return [
    ['a redirect', status(302, { Location: 'http://127.0.0.1:9/jwks' })],
    ['status 500', status(500)],
    ['2 MiB', text(`{"keys":[],"pad":"${'x'.repeat(2 * MIB)}"}`)],
    ['64 MiB without an end', endless],
    ['1,000 keys', json({ keys: Array.from({ length: 1_000 }, () => key?.publicJwk) })],
    ['no JSON', text('\u0000<html>')],
    ['nested 100,000 deep', text('['.repeat(100_000))],
    ['keys that are no list', json({ keys: { length: 1, 0: key?.publicJwk } })],
    ['a compressed answer', text('x', { 'Content-Encoding': 'gzip' })],
    ['no answer', hang],
    ['half an answer', stall],
  ]
}

const endless: RequestListener = (_req, res) => {
  const block = 'x'.repeat(MIB)
  let left = 64
  const push = () => {
    while (left-- > 0 && !res.destroyed) if (!res.write(block)) return void res.once('drain', push)
    res.end()
  }
  push()
}
