-- Removes what is due and admits the requests that fit. The service does not need this script, because the others settle too.
settle()
save()
return 1
