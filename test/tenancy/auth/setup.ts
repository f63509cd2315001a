import { AppError } from '../../../shared/kernel/errors.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import { createOidcIdentify, type OidcOptions } from '../../../shared/tenancy/auth/oidc.ts'
import type { Identify, Identity } from '../../../shared/tenancy/auth/port.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { newSigner, type Signer } from '../../support/issuer/signer.ts'

/** A clock that moves only when the test moves it. It starts at the current time. */
export class HandClock {
  #monotonic = 0
  #epoch = Date.now()

  readonly monotonicMs = () => this.#monotonic
  readonly epochMs = () => this.#epoch

  pass(ms: number): void {
    this.#monotonic += ms
    this.#epoch += ms
  }
}

export type Setup = {
  issuer: Issuer
  clock: HandClock
  identify: Identify
  log: readonly string[]
  close(): Promise<void>
}

/** Opens the verification over real HTTP requests to an issuer with these keys. */
export async function setUp(signers: readonly Signer[], options: Partial<OidcOptions> = {}): Promise<Setup> {
  const issuer = await Issuer.start(signers)
  const egress = createEgress({ allowPrivate: true })
  const clock = new HandClock()
  const lines: string[] = []
  const identify = createOidcIdentify({
    mode: 'enforced',
    issuer: issuer.url,
    audience: AUDIENCE,
    tenantClaim: 'tenant_id',
    get: egress.request,
    log: createLog({ level: 'debug', write: (line) => lines.push(line) }),
    clock,
    jwksUri: undefined,
    ...options,
  })
  const close = async () => {
    await egress.close()
    await issuer.close()
  }
  return { issuer, clock, identify, log: lines, close }
}

/** The keys of most tests, one of each kind. */
export async function newSigners(): Promise<Signer[]> {
  return [await newSigner('RS256', 'r1'), await newSigner('ES256', 'e1'), await newSigner('EdDSA', 'd1')]
}

export type Outcome = { status: number; why?: unknown; retryAfterSecs?: number | undefined; message?: string }

/** The answer to a token: 200, or the thrown error. */
export async function outcomeOf(identity: Identity | Promise<Identity>): Promise<Outcome> {
  try {
    await identity
    return { status: 200 }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { status: error.status, why: error.cause, retryAfterSecs: error.retryAfterSecs, message: error.message }
  }
}
