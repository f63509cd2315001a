import { runScenarios } from '../harness/scenarios.ts'
import { egress } from './scenarios/egress.ts'
import { rotation } from './scenarios/rotation.ts'
import { schemas } from './scenarios/schemas.ts'
import { tenants } from './scenarios/tenants.ts'
import { uploads } from './scenarios/uploads.ts'

await runScenarios({
  name: 'security',
  groups: [[tenants, rotation], [egress, uploads], [schemas]],
  takes: { short: 'a minute and a half', full: 'some minutes' },
})
