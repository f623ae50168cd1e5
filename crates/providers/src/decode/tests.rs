mod clients; // bodies as clients send them
mod mutations; // damaged bodies
mod refusals; // rejected bodies and their error messages
mod round_trip; // bodies that our codecs write
