import type { Config } from '../../shared/config/config.ts'
import { type Admission, RunAdmission } from '../../shared/limits/admission.ts'
import { Budgets } from '../../shared/limits/budgets.ts'
import { KnownLimits } from '../../shared/limits/known-limits.ts'
import { LimitSettings } from '../../shared/limits/limit-settings.ts'
import { createMeter, type Meter } from '../../shared/limits/meter.ts'
import type { RunPlaces } from '../../shared/limits/port.ts'
import type { Log } from '../../shared/log.ts'
import { createPrices } from '../../shared/providers/prices.ts'
import type { LiveConfigs } from '../../shared/tenant-config/live-configs.ts'
import type { OpenedStore } from './store.ts'

/** The limits of tenants as a process enforces them. */
export type OpenedLimits = {
  known: KnownLimits
  admission: Admission
  meter: Meter
  settings: LimitSettings
  close(): Promise<void>
}

type Parts = { configs: LiveConfigs; store: Pick<OpenedStore, 'spending'>; places: RunPlaces; log: Log }

export function openLimits(
  { modelPrices }: Pick<Config, 'modelPrices'>,
  { configs, store, places, log }: Parts,
): OpenedLimits {
  const known = new KnownLimits(configs)
  const budgets = new Budgets({ limits: known, store: store.spending, log })
  const admission = new RunAdmission({ limits: known, budgets, places, log })
  return {
    known,
    admission,
    meter: createMeter(budgets, createPrices(modelPrices)),
    settings: new LimitSettings({ configs, budgets, places }),
    async close() {
      admission.close()
      await budgets.close()
    },
  }
}
