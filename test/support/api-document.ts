import { type ApiDocument, readDocument } from '../../shared/platform/api/document.ts'
import { type Contract, createContract } from '../platform/api/contract.ts'

let document: Promise<ApiDocument> | undefined
let contract: Promise<Contract> | undefined

/** The API description as a server without authentication serves it, parsed once in a process. It must not be changed. */
export const apiDocument = (): Promise<ApiDocument> =>
  (document ??= readDocument({ basePath: '/v1', authentication: 'none' }))

/** The checks of answers against the API description, compiled once in a process. */
export const apiContract = (): Promise<Contract> => (contract ??= apiDocument().then(createContract))
