import { createMemoryPermissionBook } from '../../shared/broker/memory.ts'
import { permissionBookContract } from '../contract/permission-book.ts'

describe('permission book in memory', () => permissionBookContract(async () => createMemoryPermissionBook()))
