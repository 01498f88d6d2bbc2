import { readFileSync } from 'node:fs'
import { modelFiles } from '../../src/local-models/files/model-files.ts'
import type { ManifestModel } from '../../packages/local-models/contract.ts'

/** A program that pulls the model described in a file, so that a test can kill it. */
const [directory = '', modelPath = ''] = process.argv.slice(2)
const model = JSON.parse(readFileSync(modelPath, 'utf8')) as ManifestModel
await modelFiles(directory, { models: [model], environment: process.env }).pull(model.catalog.id)
