import { join } from 'node:path'
import { openDisk } from '../../../shared/platform/objects/disk.ts'
import { describeObjects } from '../../contract/objects.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

describe('objects on this machine', () => {
  const folder = useTempFolder()
  describeObjects('in a folder', () => openDisk(join(folder.path, 'files')))
})
