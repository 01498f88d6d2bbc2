import { render } from 'preact'
import { App } from './app.tsx'
import { openSession } from './session.ts'

void openSession()
const root = document.getElementById('app')
if (root) render(<App />, root)
