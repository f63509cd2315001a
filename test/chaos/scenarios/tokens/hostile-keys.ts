import type { RequestListener } from 'node:http'
import { allOf, type Guarantee, noneOf } from '../../../harness/guarantee.ts'
import { AUDIENCE } from '../../../support/issuer/issuer.ts'
import { hang, json, stall, status, text } from '../../../support/issuer/misbehaviour.ts'
import { compact, newSigner, type Signer, signatureOf } from '../../../support/issuer/signer.ts'
import { newSigners } from '../../../tenancy/auth/setup.ts'
import { openClockedGateway } from './clocked-gateway.ts'

const MIB = 1024 * 1024
const MINUTE = 60_000

type Keys = { signers: readonly Signer[]; foreign: Signer }

type KeySet = readonly [name: string, listener: RequestListener]

/** P15: whatever an issuer sends instead of its keys, no token is accepted because of it and no gateway fails. */
export async function sendHostileKeys(): Promise<Guarantee[]> {
  const signers = await newSigners()
  const foreign = await newSigner('RS256', 'foreign')
  const sets = hostileSets(signers)
  const outcomes = await Promise.all(sets.map(([name, listener]) => tryKeySet(name, listener, { signers, foreign })))
  const wrong = (what: 'accepted' | 'notUnavailable' | 'refused') => outcomes.flatMap((outcome) => outcome[what])
  return [
    allOf('hostile key sets', outcomes.length, sets.length),
    noneOf('tokens accepted because of a hostile key set', wrong('accepted')),
    noneOf('tokens on a cold start not answered 503', wrong('notUnavailable')),
    noneOf('valid tokens refused while valid keys are cached', wrong('refused')),
  ]
}

/** Sends tokens before any key was fetched, and when cached valid keys are due to be fetched again. */
async function tryKeySet(name: string, listener: RequestListener, { signers, foreign }: Keys) {
  await using gateway = await openClockedGateway(signers)
  const { probe, issuer, clock } = gateway
  const valid = await issuer.token()
  const later = await issuer.token()
  const forged = ['foreign', 'r1'].map((kid) => forge(issuer.url, kid, foreign))
  issuer.misbehave(listener, '/jwks')
  const cold = await probe.statuses([valid, ...forged])
  issuer.behave()
  clock.pass(MINUTE)
  const warm = await probe.status(valid)
  issuer.misbehave(listener, '/jwks')
  clock.pass(11 * MINUTE)
  const answers = await probe.statuses([valid, later])
  const forgedLater = await probe.statuses(forged)
  const say = (statuses: readonly number[]) => statuses.map((code) => `${name}: ${code}`)
  return {
    accepted: say([...cold, ...forgedLater].filter((code) => code < 400)),
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
    ['64 MiB without a Content-Length', endless],
    ['1,000 keys', json({ keys: Array.from({ length: 1_000 }, () => key?.publicJwk) })],
    ['a body that is not JSON', text('\u0000<html>')],
    ['nested 100,000 deep', text('['.repeat(100_000))],
    ['keys that are not a list', json({ keys: { length: 1, 0: key?.publicJwk } })],
    ['a compressed answer', text('x', { 'Content-Encoding': 'gzip' })],
    ['no answer', hang],
    ['an incomplete answer', stall],
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
