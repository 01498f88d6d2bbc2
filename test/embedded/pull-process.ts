import { readFileSync } from 'node:fs'
import { modelFiles } from '../../src/embedded/files/model-files.ts'
import type { ManifestModel } from '../../src/embedded/manifest/types.ts'

/** Pulls the one model of a manifest file: a process of its own, so that it can be killed. */
const [directory = '', manifestPath = ''] = process.argv.slice(2)
const model = JSON.parse(readFileSync(manifestPath, 'utf8')) as ManifestModel
await modelFiles(directory, { models: [model], environment: process.env }).pull(model.catalog.id)
