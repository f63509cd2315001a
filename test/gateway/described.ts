import { expect } from 'chai'
import { readDocument } from '../../shared/platform/api/document.ts'
import { type Contract, createContract } from '../platform/api/contract.ts'

/** Reads the body of an answer and checks the answer against the API description. */
export function useContract(): (method: string, path: string, response: Response) => Promise<unknown> {
  let contract: Contract
  before(async () => {
    contract = createContract(await readDocument({ basePath: '/v1', authentication: 'none' }))
  })
  return async (method, path, response) => {
    const { status, headers } = response
    const body = await response.json()
    expect(contract.problemsOfAnswer(method, path, { status, headers, body })).to.equal('')
    return body
  }
}
