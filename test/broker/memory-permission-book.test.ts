import { createMemoryPermissionBook } from '../../shared/broker/memory.ts'
import { permissionBookContract } from '../contract/permission-book.ts'
import { permissionListContract } from '../contract/permission-list.ts'

describe('permission book in memory', () => {
  const open = async () => createMemoryPermissionBook()
  permissionBookContract(open)
  permissionListContract(open)
})
