import { expect } from 'chai'
import type { Contract } from '../platform/api/contract.ts'
import { apiContract } from '../support/api-document.ts'

/** Reads the body of an answer and checks the answer against the API description. */
export function useContract(): (method: string, path: string, response: Response) => Promise<unknown> {
  let contract: Contract
  before(async () => {
    contract = await apiContract()
  })
  return async (method, path, response) => {
    const { status, headers } = response
    const body = await response.json()
    expect(contract.problemsOfAnswer(method, path, { status, headers, body })).to.equal('')
    return body
  }
}
