import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { get, send } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { tell } from '../../base/announce.ts'
import { Loaded } from '../../parts/loading.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { TextField } from '../../parts/text-field.tsx'
import { inWords } from './in-words.ts'
import { RouteFields } from './route-fields.tsx'

type Config = Schema<'EngineConfig'>
type Routing = Config['routing']

/** The settings for the provider and model of each role, and for the data that is kept of runs. */
export function EngineSettings() {
  const concerns = ({ event }: { event: string }) => event === 'config.changed'
  const config = useResource('/config/engine', () => get<Config>('/config/engine'), concerns)
  return (
    <Loaded from={config}>
      {(data) => <EngineForm key={JSON.stringify(data)} config={data} onSaved={config.reload} />}
    </Loaded>
  )
}

const LABELS: Readonly<Record<string, string>> = {
  ...{ instance: 'Provider', model: 'Model', retention_days: 'Days' },
  ...{ fallback_instance: 'Second provider', fallback_model: 'Second model' },
}

function EngineForm({ config, onSaved }: { config: Config; onSaved(): void }) {
  const routing = useSignal<Routing>(config.routing)
  const storesPayloads = useSignal(config.audit.store_payloads)
  const days = useSignal(String(config.audit.retention_days))
  const fileDays = useSignal(String(config.files.retention_days))
  const save = async () => {
    const files = { retention_days: Number(fileDays.value) }
    const audit = { store_payloads: storesPayloads.value, retention_days: Number(days.value) }
    await send('PUT', '/config/engine', { routing: routing.value, audit, files })
    tell('The routing is saved: it applies to the next turn of every run')
    onSaved()
  }
  return (
    <div class="card">
      <SaveForm submit="Save" onSave={save} say={inWords(LABELS)}>
        <RouteFields routing={routing} instances={config.instances.map(({ name }) => name)} />
        <h2>What is kept</h2>
        <label class="row tight">
          <input
            type="checkbox"
            checked={storesPayloads.value}
            onChange={({ currentTarget }) => (storesPayloads.value = currentTarget.checked)}
          />
          Keep beginnings of prompts, and events, inputs and outputs
        </label>
        <div class="form-grid">
          <TextField label="Days" value={days} hint="Records of runs, flows and decisions are kept for this long." />
          <TextField
            label="Days of files"
            value={fileDays}
            hint="Files that come from now on are kept for this long."
          />
        </div>
      </SaveForm>
    </div>
  )
}
