import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWorkspaces } from '../../../shared/work/runs/workspaces.ts'
import { workspacesContract } from '../../contract/workspaces.ts'

describe('workspaces in a folder that the processes share', () => {
  let root: string
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'ae-workspaces-'))
  })
  afterEach(() => rm(root, { recursive: true }))
  workspacesContract(async () => createWorkspaces(root))
})
