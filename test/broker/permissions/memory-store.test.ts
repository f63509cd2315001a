import { createMemoryPermissionStore } from '../../../shared/broker/memory.ts'
import { permissionListContract } from '../../contract/permission-list.ts'
import { permissionBookContract } from '../../contract/permission-store.ts'

describe('permission book in memory', () => {
  const open = async () => createMemoryPermissionStore()
  permissionBookContract(open)
  permissionListContract(open)
})
