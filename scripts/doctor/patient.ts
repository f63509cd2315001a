import { loadConfig } from '../../shared/platform/config/config.ts'
import type { Patient } from './finding.ts'

type Settings = Readonly<Record<string, string | undefined>>

/** The installation that the settings describe, with a Redis a cluster. Throws a ConfigError. */
export function patientOf(settings: Settings, url?: string): Patient {
  const isCluster = ['REDIS_URL', 'REDIS_SENTINELS', 'REDIS_CLUSTER'].some((name) => settings[name])
  const config = loadConfig(settings, isCluster ? 'cluster' : 'standalone')
  return { config, isCluster, publicUrl: url?.replace(/\/+$/, ''), token: settings['DOCTOR_TOKEN'] || undefined }
}
