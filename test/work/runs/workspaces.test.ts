import { createWorkspaces } from '../../../shared/work/runs/workspaces.ts'
import { workspacesContract } from '../../contract/workspaces.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

describe('workspaces in a folder that the processes share', () => {
  const root = useTempFolder({ perTest: true })
  workspacesContract(async () => createWorkspaces(root.path))
})
