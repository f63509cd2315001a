// Tests memory-store.ts and store.ts.

import { createMemoryPermissionStore } from '../../../shared/cluster/permissions/memory-store.ts'
import { permissionListContract } from '../../contract/permission-list.ts'
import { permissionStoreContract } from '../../contract/permission-store.ts'

describe('permission store in memory', () => {
  const open = async () => createMemoryPermissionStore()
  permissionStoreContract(open)
  permissionListContract(open)
})
