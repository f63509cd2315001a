import { runScenarios } from '../harness/scenarios.ts'
import { egress } from './scenarios/egress.ts'
import { rotation } from './scenarios/rotation.ts'
import { tenants } from './scenarios/tenants.ts'
import { uploads } from './scenarios/uploads.ts'

await runScenarios({
  name: 'security',
  groups: [
    [tenants, rotation],
    [egress, uploads],
  ],
  takes: { short: 'a minute', full: 'some minutes' },
})
