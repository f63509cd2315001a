import { runScenarios } from '../harness/scenarios.ts'
import { egress } from './scenarios/egress.ts'
import { fairness } from './scenarios/fairness.ts'
import { rotation } from './scenarios/rotation.ts'
import { schemas } from './scenarios/schemas.ts'
import { tenants } from './scenarios/tenants.ts'
import { uploads } from './scenarios/uploads.ts'

await runScenarios({
  name: 'security',
  scenarios: [fairness, tenants, rotation, egress, uploads, schemas],
  lanes: 2,
  takes: { short: 'two minutes', full: 'some minutes' },
})
