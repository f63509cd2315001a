import { join } from 'node:path'
import { openSqliteStore } from '../../../../shared/platform/store/sqlite/sqlite.ts'
import { runRecordContract } from '../../../contract/run-records.ts'
import { useTempFolder } from '../../../support/temp-folder.ts'

describe('the records of runs in SQLite', () => {
  const dir = useTempFolder()
  runRecordContract((collections, now) =>
    openSqliteStore({ file: join(dir.path, 'runs.db'), collections, ...(now && { now }) }),
  )
})
