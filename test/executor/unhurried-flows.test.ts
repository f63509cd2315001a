import { expect } from 'chai'
import { patientChecks } from '../../services/executor/unhurried-flows.ts'
import { AppError, invalidRequest, tooMany } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'

describe('the checks of what nobody waits for', () => {
  const checksThat = (check: () => Promise<[]>) => {
    const checkers: SchemaCheckers = { of: () => ({ check, findUnusable: check }), close: async () => {} }
    return patientChecks(checkers).of(DEFAULT_TENANT)
  }

  it('D55.2: are made again while too many others of the tenant, or of all, are waiting', async () => {
    const refusals = [tooMany('too many of yours', 1), new AppError('unavailable', 'too many')]
    const checks = checksThat(async () => {
      const refusal = refusals.pop()
      if (refusal) throw refusal
      return []
    })
    expect(await checks.check({}, {})).to.deep.equal([])
    expect(refusals).to.deep.equal([])
  })

  it('are refused at once for a schema that cannot be used', async () => {
    let calls = 0
    const checks = checksThat(async () => {
      calls++
      throw invalidRequest('it is too large')
    })
    const failure = await checks.check({}, {}).catch((cause: unknown) => cause)
    expect([failure, calls]).to.satisfy(([cause, count]: unknown[]) => cause instanceof AppError && count === 1)
  })
})
