import { field, optional, or, secret } from './field.ts'
import { baseUrl, bucketPlace, matching, megabytes, path, token } from './values.ts'

const MAX_MB = 1_000_000

/** The folders that tools work in. */
export const WORKSPACE_FIELDS = {
  workspaceDir: field(
    'WORKSPACE_DIR',
    optional(path),
    "Folder of the tools' workspaces (default: workspaces in DATA_DIR); in the cluster one that all workers share, unless WORKSPACE_STORE is set.",
  ),
  workspaceStore: field(
    'WORKSPACE_STORE',
    optional(bucketPlace),
    'Bucket that keeps the workspaces of sessions and plans, so that the processes need not share WORKSPACE_DIR: s3://bucket/prefix; all processes have the same.',
  ),
  workspaceStoreEndpoint: field(
    'WORKSPACE_STORE_ENDPOINT',
    optional(baseUrl),
    "Address of a server that speaks the protocol of S3 and keeps conditional writes; by default Amazon's.",
  ),
  workspaceStoreRegion: field(
    'WORKSPACE_STORE_REGION',
    or(matching(/^[a-z0-9-]{1,64}$/, 'a region such as eu-central-1'), 'us-east-1'),
    'Region of the bucket.',
  ),
  workspaceStoreAccessKey: field(
    'WORKSPACE_STORE_ACCESS_KEY',
    optional(token),
    'Id of the key that may read, write, delete and list in the bucket.',
  ),
  workspaceStoreSecretKey: field('WORKSPACE_STORE_SECRET_KEY', secret(token), 'The secret of that key.'),
  workspaceQuotaBytes: field(
    'WORKSPACE_QUOTA_MB',
    or(megabytes(1, MAX_MB), '100'),
    'MB that one workspace may hold, in at most 10,000 files; beyond it Write and Edit fail, and WORKSPACE_STORE keeps nothing more.',
  ),
}
